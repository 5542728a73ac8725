import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import './styles/base.css';
import './styles/page.css';
import './styles/views.css';

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<App />);
